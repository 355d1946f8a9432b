"""An API server in this process, good enough for clients, for kubectl and for being failed against."""
