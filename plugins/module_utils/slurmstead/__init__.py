"""Code that modules, plugins and programs on nodes share, in rooms; tests/unit/test_rooms.py defines their order."""
