"""Pictures from traces: figures, overlays and the front end of the page. Nothing is here yet."""
