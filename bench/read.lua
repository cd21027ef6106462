-- The wrk script of bench/read.ts: asks for several checkouts in turn. The requests are made in advance, because
-- formatting one costs the load generator as much as sending it does.
local requests, sent = {}, 0

function init(args)
  local method, headers = args[1], args[2]
  for i = 3, #args do
    requests[i - 2] = method .. ' ' .. args[i] .. ' HTTP/1.1\r\nHost: ' .. wrk.host .. '\r\n' .. headers:gsub('|', '\r\n')
      .. (method == 'POST' and 'Content-Length: 0\r\n' or '') .. '\r\n'
  end
end

function request()
  sent = sent + 1
  return requests[sent % #requests + 1]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"bytes":%d,"refused":%d,"broken":%d,"p50Ms":%.2f,"p99Ms":%.2f}\n',
    summary.requests, summary.duration, summary.bytes, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
