"""The kinds of mcptasks: models, lifecycle, names, and the Kubernetes API they live in."""
