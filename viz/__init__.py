"""Pictures from traces: figures, tables, the guide, and the front end of the page."""
