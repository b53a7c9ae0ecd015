"""Tables and figures as files: Markdown, CSV, PNG and SVG."""
