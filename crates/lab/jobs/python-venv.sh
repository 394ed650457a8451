# needs: python3
# An environment of its own with a package of the workspace.
python3 -m venv --without-pip env
mkdir -p env/lib/job && echo 'three = 3' > env/lib/job/__init__.py
PYTHONPATH=env/lib env/bin/python -c 'import job, sys; sys.exit(job.three - 3)'
