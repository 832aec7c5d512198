"""The paper's experiments: its data sets, its models, races against peers."""
