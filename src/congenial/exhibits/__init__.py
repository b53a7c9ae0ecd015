"""Tables, figures and plots: as text, in notebooks, and as Markdown, CSV, PNG and SVG files.

Offered: `exhibit.Exhibit`, `exhibit.Figure`, `files.as_csv`, `files.as_image`,
`plots.axes_or_new`, `plots.draw_bars`, `plots.draw_law`, `plots.draw_normal`, `plots.draw_icicle`.
"""
