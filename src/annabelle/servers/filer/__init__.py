"""The filer: files of the workspace, and of folders the user has granted. Nothing else, whatever the path says."""
