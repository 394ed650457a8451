# needs: python3
# A database in a file, with a journal that processes share.
cat > one.py <<'P'
import sqlite3, subprocess, sys
base = sqlite3.connect("base.db")
base.execute("PRAGMA journal_mode = WAL")
base.execute("CREATE TABLE one (it INTEGER)")
base.commit()
subprocess.run([sys.executable, "-c", "import sqlite3; b = sqlite3.connect('base.db'); b.execute('INSERT INTO one VALUES (3)'); b.commit()"], check=True)
assert base.execute("SELECT it FROM one").fetchall() == [(3,)]
P
python3 one.py
