"""One builder a page of docs/, beside the study that makes only this page: ``python -m docs.builders``."""
