"""Pictures and files of a study: plotly figures, tables as CSV and LaTeX, and a report in one HTML file."""
