"""Compares `tare serve` with a server of FastAPI and torch on one model: median and 99th percentile of the latency, and
answers a second, for 1, 8 and 32 clients.

Run: python bench_serve.py FOLDER_OF_PROGRAMS BUNDLE PICTURE [SECONDS]

BUNDLE is of pictures; the other server has the model from `tare export --format pt2` and reads the picture with Pillow.
Needs the packages fastapi, uvicorn, pillow and torch. Both servers compute with one thread. Tare is measured twice, so
that the ratio of its two runs shows the noise.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

OTHER = """
import io, sys
import numpy, torch, uvicorn
from fastapi import FastAPI, Request
from PIL import Image
torch.set_num_threads(1)
program = torch.export.load(sys.argv[1]).module()
app = FastAPI()

@app.get("/health")
def health():
    return {"status": "ok"}

@app.post("/predict")
async def predict(request: Request):
    picture = Image.open(io.BytesIO(await request.body())).convert("L")
    inputs = torch.from_numpy(numpy.array(picture)).float().div(255)[None, None]
    with torch.no_grad():
        scores = torch.softmax(program(inputs), 1)[0]
    best = int(scores.argmax())
    return {"samples": [{"predictions": [{"label": str(best), "index": best, "probability": float(scores[best])}]}]}

uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""


def free_port():
    import socket
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def started(command, port):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if command[0].endswith("tare"):
        environment.pop("LD_PRELOAD", None)
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    for _ in range(600):
        time.sleep(0.1)
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health").read()
            return server
        except OSError:
            pass
    sys.exit("the server does not start: " + " ".join(command))


def main():
    programs, bundle, picture = sys.argv[1:4]
    seconds = sys.argv[4] if len(sys.argv) > 4 else "5"
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    with tempfile.TemporaryDirectory() as folder:
        program, script = os.path.join(folder, "net.pt2"), os.path.join(folder, "other.py")
        subprocess.run([os.path.join(programs, "tare"), "export", bundle, "--format", "pt2", "--out", program],
                       check=True, stdout=subprocess.DEVNULL, env=clean)
        with open(script, "w", encoding="utf-8") as file:
            file.write(OTHER)
        port = free_port()
        tare = [os.path.join(programs, "tare"), "serve", bundle, "--port", str(port), "--threads", "1"]
        print("clients  server   p50 ms  p99 ms  answers/s  failed")
        rates = {}
        for clients in (1, 8, 32):
            for name, command in (("tare", tare), ("FastAPI", [sys.executable, script, program, str(port)]),
                                  ("tare", tare)):
                server = started(command, port)
                load = [os.path.join(programs, "bench_serve"), str(port), picture, str(clients)]
                try:
                    subprocess.run(load + ["1"], check=True, stdout=subprocess.DEVNULL, env=clean)
                    out = subprocess.run(load + [seconds], check=True, capture_output=True, text=True,
                                         env=clean).stdout
                    with open(f"/proc/{server.pid}/status", encoding="utf-8") as status:
                        resident = re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)
                finally:
                    server.send_signal(signal.SIGTERM)
                    server.wait()
                p50, p99, rate, failed = out.split()
                rates.setdefault((clients, name), []).append(float(rate))
                print(f"{clients:7}  {name:7}  {p50:>6}  {p99:>6}  {rate:>9}  {failed:>6}  {int(resident) // 1024} MiB",
                      flush=True)
            one, two = rates[clients, "tare"]
            ratio = (one + two) / 2 / rates[clients, "FastAPI"][0]
            print(f"         tare/FastAPI {ratio:.2f}, tare/tare {two / one:.2f}")


if __name__ == "__main__":
    main()
