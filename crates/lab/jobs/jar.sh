# needs: javac java jar
# A program in an archive with a manifest.
echo 'class One { public static void main(String[] a) { System.out.println("three"); } }' > One.java
javac One.java && jar --create --file one.jar --main-class One One.class
[ "$(java -jar one.jar)" = three ]
