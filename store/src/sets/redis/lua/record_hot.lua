-- Records a post's score, unless a newer version is there. KEYS: the day's list, its versions.
-- ARGV: the post, score, version, how long both live (s).
-- A version whose score was lost decides nothing: else the list could never be filled again.
local known = redis.call('HGET', KEYS[2], ARGV[1])
if known and tonumber(known) >= tonumber(ARGV[3]) and redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
redis.call('EXPIRE', KEYS[2], ARGV[4])
