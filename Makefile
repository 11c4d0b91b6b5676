crds:
	.venv/bin/python -m mcptasks_crds.manifest
