"""`python -m minisgl --model FOLDER`: see minisgl/server/args.py for the flags."""

import sys

if __name__ == "__main__":
    from minisgl.server import warm_up

    warm_up()
    from minisgl.server.launch import main

    sys.exit(main(sys.argv[1:]))
