-- Drops the homes of some buckets, with the states of their authors, a step at a time. KEYS: a key of the server that is meant. ARGV: the cursor, the pattern of
-- homes, the buckets. Gives the cursor to go on with; '0' when it is done.
local wanted = {}
for place = 3, #ARGV do
  wanted[ARGV[place]] = true
end
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
for _, home in ipairs(found[2]) do
  if wanted[string.match(home, '{(%d+)}')] then
    redis.call('UNLINK', home, (string.gsub(home, 'timeline:home:', 'authors:', 1)))
  end
end
return found[1]
