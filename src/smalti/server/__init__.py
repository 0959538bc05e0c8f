"""The annotator's page over HTTP, by default only on this machine."""
