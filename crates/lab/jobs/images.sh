# needs: convert
# An image is drawn and changed into another kind.
convert -version | grep -q ImageMagick || { echo "convert is not ImageMagick's"; exit 77; }
convert -size 8x8 xc:red one.png
convert one.png one.gif && [ -s one.gif ]
