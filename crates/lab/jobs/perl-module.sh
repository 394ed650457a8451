# needs: perl make
# A module: configured, built and tested.
perl -MExtUtils::MakeMaker -MTest::More -e 1 2> /dev/null || { echo "perl has no MakeMaker"; exit 77; }
mkdir -p lib t && printf 'package One;\nsub three { 3 }\n1;\n' > lib/One.pm
printf 'use Test::More tests => 1;\nuse One;\nis(One::three(), 3);\n' > t/one.t
echo "use ExtUtils::MakeMaker; WriteMakefile(NAME => 'One', VERSION => '1.0');" > Makefile.PL
perl Makefile.PL > /dev/null && make > /dev/null && make test
