# needs: xsltproc
# A document of XML, transformed.
echo '<a><b>3</b></a>' > one.xml
echo '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/><xsl:template match="/"><xsl:value-of select="a/b"/></xsl:template></xsl:stylesheet>' > one.xsl
[ "$(xsltproc one.xsl one.xml)" = 3 ]
