"""Configuration of the fake web server."""

import os

bind = f"127.0.0.1:{os.environ['PORT']}"
workers = 2
preload_app = True
control_socket_disable = True
