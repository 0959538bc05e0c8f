"""Files that others read and write, one module a format."""
