"""See, touch and compare every encoding: one page, its numbers from this library.

    views/        what each view shows: bounded parameters -> named arrays, and the Python that makes them
    server.py     the page and its numbers on this machine's loopback
    export.py     the page and chosen numbers as one file
    widget.py     the page in a notebook
    page.js       the built page; its sources are in web/

A view's numbers are computed here and only drawn there. Arrows run downward: views know nothing of servers.
"""
