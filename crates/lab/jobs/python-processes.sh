# needs: python3
# A pool of processes with shared values.
cat > one.py <<'P'
import multiprocessing as many
def double(it): return it * 2
if __name__ == "__main__":
    with many.Pool(4) as pool: assert pool.map(double, range(4)) == [0, 2, 4, 6]
    queue, total = many.Queue(), many.Value("i", 3)
    queue.put(total.value); assert queue.get() == 3
P
python3 one.py
