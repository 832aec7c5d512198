"""The paper's experiments, repeated: protocol, explainers, metrics, resumable runs, tables, figures, a page."""
