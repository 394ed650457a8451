# needs: ssh-keygen
# Keys, and a signature that is checked.
ssh-keygen -q -t ed25519 -N '' -C job -f key
echo text > text
ssh-keygen -q -Y sign -f key -n file text
echo "job $(cat key.pub)" > signers
ssh-keygen -Y verify -f signers -I job -n file -s text.sig < text
