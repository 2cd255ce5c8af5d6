def page(done): return "<p>todo"
