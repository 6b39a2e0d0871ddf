-- Notes that a session was used, if it is there: whoever ends it at the same moment must not see it come back. KEYS: the
-- session. ARGV: when it was used (ms). Returns whose it is, when it was opened and when it ends; false when it is not there.
local session, seen = KEYS[1], tonumber(ARGV[1])
local found = redis.call('HMGET', session, 'user', 'created', 'seen', 'idle', 'ends')
local user, created, before, idle, ends = unpack(found)
if not (user and created and before and idle and ends) then
  return false
end
if seen > tonumber(before) then
  redis.call('HSET', session, 'seen', ARGV[1])
  redis.call('PEXPIREAT', session, math.min(seen + idle, tonumber(ends)))
end
return { user, created, ends }
