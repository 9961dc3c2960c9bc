"""Reading a main loop: its statements, register steps and matrix instructions."""
