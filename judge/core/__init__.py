"""The part of the judge that is pure: no processes, no files, no clock. It runs on the server and in a browser."""
