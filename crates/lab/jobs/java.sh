# needs: javac java
# Compiled and run, with a server of its own and TLS of the platform.
cat > One.java <<'J'
import com.sun.net.httpserver.HttpServer;
import java.net.*;
import java.net.http.*;
public class One {
    public static void main(String[] arguments) throws Exception {
        javax.net.ssl.SSLContext.getDefault();
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", it -> { it.sendResponseHeaders(204, -1); it.close(); });
        server.start();
        var address = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
        var answer = HttpClient.newHttpClient().send(HttpRequest.newBuilder(address).build(), HttpResponse.BodyHandlers.discarding());
        server.stop(0);
        System.exit(answer.statusCode() == 204 ? 0 : 1);
    }
}
J
javac One.java && java -Xmx128m One
