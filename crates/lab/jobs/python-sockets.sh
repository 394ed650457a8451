# needs: python3
# Tests that serve on ports of both families and ask them.
cat > test_one.py <<'P'
import http.server, socket, threading, unittest, urllib.request
class Sockets(unittest.TestCase):
    def test_http(self):
        server = http.server.HTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.handle_request).start()
        with urllib.request.urlopen("http://localhost:%d/" % server.server_port) as answer:
            self.assertEqual(answer.status, 200)
        server.server_close()
    def test_datagrams(self):
        one, other = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        one.bind(("127.0.0.1", 0))
        other.sendto(b"x", one.getsockname())
        self.assertEqual(one.recv(1), b"x")
        one.close(); other.close()
    def test_names(self):
        self.assertEqual(socket.gethostbyname("localhost"), "127.0.0.1")
        self.assertEqual([name for _, name in socket.if_nameindex()], ["lo"])
P
python3 -m pytest -q test_one.py 2> /dev/null || python3 -m unittest -q test_one
