"""The explorer: one page with interactive views, whose numbers this library computes.

    views/        what each view shows: bounded parameters -> named arrays, and the Python that makes them
    server.py     the page and its numbers on this machine's loopback
    export.py     the page and chosen numbers as one file
    widget.py     the page in a notebook
    page.js       the built page; its sources are in web/

Python computes the numbers of a view and the page draws them. Views do not depend on servers.
"""
