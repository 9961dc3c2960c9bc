"""Extensions of Sphinx for the site of the documentation; docs/conf.py names them."""
