"""The web interface: the main script and the components that pages share. With features, the only home of streamlit.

`main.py` is what Streamlit runs, `navigation.py` the table of pages; `benchmark/` is the form, `run/` a run that is
followed, `what_if/` a page of its own; `shared/` draws for all visitors what is the same for all;
`server/` is the web server around Streamlit: middlewares, limits, health. `link.py` and `url_widgets.py` keep what is
chosen in the address.

It imports charts, jobs and below. A page is a file of `pages/` and a line of `navigation.py`, or a feature with its
own `page.py`.
"""
