# needs: mvn java
# A project that needs no plug-in: read and validated without a network.
printf '<project><modelVersion>4.0.0</modelVersion><groupId>job</groupId><artifactId>one</artifactId><version>1</version><packaging>pom</packaging></project>\n' > pom.xml
mvn -o -q validate
