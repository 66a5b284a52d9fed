"""A TCP relay with a small receive window, whose reading can be stopped: python3 narrow-relay.py PORT

The kernel of a reader that is merely paused buffers some 30 MiB on one machine (tcp_rmem), more
than a test should send, and Node cannot set SO_RCVBUF. This relay connects to 127.0.0.1:PORT for
each connection that it accepts, and prints its own port. SIGUSR1 stops reading from there, SIGUSR2
continues it.
"""

import signal
import socket
import sys
import threading

RECEIVE_BYTES = 32 * 1024

reading = threading.Event()
reading.set()
always = threading.Event()
always.set()


def pump(source, sink, gate):
    try:
        while True:
            gate.wait()
            data = source.recv(RECEIVE_BYTES)
            if not data:
                break
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            end.close()


def serve(listener, port):
    while True:
        client, _ = listener.accept()
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        server.connect(("127.0.0.1", port))
        for ends in ((client, server, always), (server, client, reading)):
            threading.Thread(target=pump, args=ends, daemon=True).start()


signal.signal(signal.SIGUSR1, lambda *_: reading.clear())
signal.signal(signal.SIGUSR2, lambda *_: reading.set())
front = socket.create_server(("127.0.0.1", 0), backlog=100)
threading.Thread(target=serve, args=(front, int(sys.argv[1])), daemon=True).start()
print(front.getsockname()[1], flush=True)
sys.stdin.read()  # until the parent process ends
