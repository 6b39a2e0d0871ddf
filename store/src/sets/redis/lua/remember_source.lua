-- Notes that a person has come in from a source. The score is until when that counts. KEYS: the person's sources. ARGV: the
-- source, for how long (ms), how many there may be.
local known, source, kept, max = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', known, '-inf', now)
redis.call('ZADD', known, now + kept, source)
redis.call('ZREMRANGEBYRANK', known, 0, -max - 1)
if redis.call('PTTL', known) < kept then
  redis.call('PEXPIRE', known, kept)
end
