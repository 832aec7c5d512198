"""The paper's experiments, repeated: protocol, explainers, metrics, a resumable run, tables, figures, a page."""
