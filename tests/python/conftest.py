"""The plugin is loaded by its module: the package under test is not installed."""
pytest_plugins = ["kvscope.pytest_plugin", "pytester"]
