"""``mcptasks dev``: control plane, operator and service on one machine, for daily use."""
