# One image for web and worker. TORCH_INDEX: where pip finds a CPU build of torch (see README); empty: plain pip.
FROM python:3.11-slim

ARG TORCH_INDEX=
ENV PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends libseccomp2 ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH

WORKDIR /app
COPY requirements.lock ./
RUN pip install -q --no-cache-dir ${TORCH_INDEX:+--extra-index-url $TORCH_INDEX} -r requirements.lock

COPY . .
RUN python tools/frontend.py build \
 && rm -rf web/frontend/node_modules \
 && python -c "from web.i18n import compile_catalogues; compile_catalogues()" \
 && python -m compileall -q judge minisgl fakes tools web practice \
 && install -d -o 1000 -g 1000 /data

USER 1000:1000
ENV COURSE_DATA_DIR=/data COURSE_HOST=0.0.0.0 COURSE_PUBLISHED_ON_LOOPBACK=true
EXPOSE 8000
CMD ["python", "-m", "web.serve"]
