"""The embedded control plane: enough of the Kubernetes API on one port, Jobs as local processes."""
