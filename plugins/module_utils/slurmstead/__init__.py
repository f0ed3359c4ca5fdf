"""What modules, plugins and programs on nodes share, in rooms; tests/unit/test_rooms.py has the order of them."""
