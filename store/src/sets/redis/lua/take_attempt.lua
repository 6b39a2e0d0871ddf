-- Takes a place in a sliding window. KEYS: the window. ARGV: the ticket, places at the most, how long each is taken (ms).
-- Returns false; where all are taken, in how many milliseconds one will be free.
local window, ticket, max, span = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', window, '-inf', now - span)
if redis.call('ZSCORE', window, ticket) then
  return false
end
local taken = redis.call('ZCARD', window)
if taken >= max then
  local in_the_way = redis.call('ZRANGE', window, taken - max, taken - max, 'WITHSCORES')
  return math.max(1, in_the_way[2] + span - now)
end
redis.call('ZADD', window, now, ticket)
redis.call('PEXPIRE', window, span)
return false
