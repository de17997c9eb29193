"""The report as a page: figures and plots of the marts."""
