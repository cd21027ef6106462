-- The wrk script of bench/create.ts: every request creates a new order with a fresh Idempotency-Key. The request is
-- concatenated by hand because wrk.format costs the load generator as much as sending does.
local head, made, run

function init(args)
  made = 0
  run = args[2]
  head = 'POST /api/v1/checkouts HTTP/1.1\r\nHost: ' .. wrk.host .. '\r\nX-API-Key: ' .. args[1]
    .. '\r\nContent-Type: application/json\r\nIdempotency-Key: '
end

function request()
  made = made + 1
  local order = run .. '-' .. made
  local body = '{"orderId":"order-' .. order .. '","priceAmount":"12.50","priceCurrency":"USD",'
    .. '"successRedirectUrl":"https://shop.example/thanks?order=' .. order .. '"}'
  return head .. order .. '\r\nContent-Length: ' .. #body .. '\r\n\r\n' .. body
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"refused":%d,"broken":%d,"p50Ms":%.1f,"p99Ms":%.1f}\n',
    summary.requests, summary.duration, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
