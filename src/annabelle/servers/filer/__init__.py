"""The filer: files in the workspace and in folders the user has granted, and nowhere else."""
