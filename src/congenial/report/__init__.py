"""A page about a release for readers who know no statistics: certificate and tables to HTML."""
