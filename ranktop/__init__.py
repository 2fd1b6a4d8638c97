"""ranktop: does what is allocated, pinned and moved match what this launch was supposed to do?"""

import os

# Inherited from SGLang's environment it would make prometheus_client write ranktop's own series into the
# server's mmap files. It has to go before anything imports prometheus_client.
os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)

__version__ = "0.1.0"
