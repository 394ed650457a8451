# needs: ruby
# Sockets, threads and a file of its standard library.
ruby -rsocket -rjson -e 'server = TCPServer.new("127.0.0.1", 0); Thread.new { server.accept.puts(JSON.dump(3)) }; exit(JSON.parse(TCPSocket.new("127.0.0.1", server.addr[1]).gets) == 3)'
